"""The session: pure, and in v2 terms only. Commands return the events to append; `Session.apply` folds
them."""

from typing import TYPE_CHECKING

from antiphon.lazy_names import lazy_names

if TYPE_CHECKING:
    from antiphon.engine.annotations import ANNOTATION_UPDATES
    from antiphon.engine.configuration import offered_values
    from antiphon.engine.forms.form import (
        BooleanField,
        ChoiceField,
        ChoicesField,
        Field,
        IntegerField,
        NumberField,
        Option,
        TextField,
        Unchecked,
        Unfit,
        UnknownField,
    )
    from antiphon.engine.items import Compaction, Plan
    from antiphon.engine.tools import Terminal, ToolCall
    from antiphon.engine.transcript import TYPE_OF, Message, MessageType, is_deletion
    from antiphon.engine.turn import TurnState
    from antiphon.engine.who import sender_in

__all__ = [
    "ANNOTATION_UPDATES", "TYPE_OF", "BooleanField", "ChoiceField", "ChoicesField", "Compaction",
    "Field", "IntegerField", "Message", "MessageType", "NumberField", "Option", "Plan",
    "Terminal", "TextField", "ToolCall", "TurnState", "Unchecked", "Unfit", "UnknownField",
    "is_deletion", "offered_values", "sender_in",
]  # fmt: skip
__getattr__ = lazy_names(__name__, {
    "annotations": ("ANNOTATION_UPDATES",),
    "configuration": ("offered_values",),
    "forms.form": ("BooleanField", "ChoiceField", "ChoicesField", "Field", "IntegerField", "NumberField",
        "Option", "TextField", "Unchecked", "Unfit", "UnknownField"),
    "items": ("Compaction", "Plan"),
    "tools": ("Terminal", "ToolCall"),
    "transcript": ("TYPE_OF", "Message", "MessageType", "is_deletion"),
    "turn": ("TurnState",),
    "who": ("sender_in",),
})  # fmt: skip
