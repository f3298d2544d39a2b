"""Text as lines of the screen: safe, wrapped and coloured."""
