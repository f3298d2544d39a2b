"""An agent that shows what a page has to draw: code, formulas, diffs, terminals and long texts."""

from __future__ import annotations

from antiphon.agent import Agent, AgentTurn
from antiphon.schema import v2

agent = Agent("showing", version="1", accepts=["image", "embedded_context"])

TEXT = r"""Here is the **plan**. It costs $5 and $10, and runs in $O(n \log n)$.

```python
@dataclass
class Point:  # a place
    x: float = 1.5

    def far(self, other: "Point") -> bool:
        return self.x > 0x1f and other is not None
```

The area is

$$
\int_0^\infty e^{-x^2}\,dx = \frac{\sqrt{\pi}}{2}, \qquad
A = \begin{pmatrix} a & b \\ c & d \end{pmatrix}
$$

```json
{"name": "antiphon", "size": 12, "good": true}
```

And \(\nosuchthing{x}\) stays.
"""
FIRST = "import os\n\n\ndef main() -> None:\n    print('one')\n"
SECOND = FIRST.replace("'one'", "'two'")
THIRD = SECOND.replace("import os\n", "import sys\n")


@agent.on_prompt
async def work(turn: AgentTurn) -> None:
    if turn.prompt.text.startswith("say"):
        links = [block.uri for block in turn.prompt.content if isinstance(block, v2.ResourceLink)]
        await turn.say(" ".join(["heard", turn.prompt.text[:80], *links]))
        return
    await turn.say(TEXT)
    folder = turn.session.cwd
    async with turn.tool_call("Change app.py", kind="edit") as call:
        await call.locate(f"{folder}/src/app.py", line=5)
        await call.diff(f"{folder}/src/app.py", old=FIRST, new=SECOND)
    async with turn.tool_call("Read notes.md and app.py", kind="read") as call:
        await call.locate(f"{folder}/notes.md", line=1)
        await call.locate(f"{folder}/src/app.py", line=2)
        await call.write("some output")
    async with turn.tool_call("Change app.py again, and add style.css", kind="edit") as call:
        await call.diff(f"{folder}/src/app.py", old=SECOND, new=THIRD)
        await call.diff(f"{folder}/style.css", old=None, new=".a { color: #fff; }\n")
    async with turn.tool_call("Run it", kind="execute") as call:
        await call.run(["sh", "-c", "printf 'line of output %0100d\\n' 1 2 3"])


agent.run()
