"""Reports: the verdicts as text, JSON, JUnit, HTML and a badge."""
