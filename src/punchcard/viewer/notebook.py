"""The page as a notebook widget (the extra `view`): its questions go to a session in this process, as messages.

A question is {id, name, given}: `given` is what the page's source was called with, the last of it an object of more
arguments. The reply is {id, reply} or {id, error}.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from punchcard.arguments import checked
from punchcard.errors import PunchcardError, shortened
from punchcard.machines.base import Machine
from punchcard.viewer import page
from punchcard.viewer.session import QUESTIONS, Session

if TYPE_CHECKING:
    from anywidget import AnyWidget

Program = TypeVar("Program")
GLUE = """
/** Questions as messages to the kernel, each with a number that its answer bears. */
function asking(model) {
  const waiting = new Map();
  model.on("msg:custom", ({ id, reply, error }) => {
    const [kept, broken] = waiting.get(id) ?? [];
    waiting.delete(id);
    if (error !== undefined) broken?.(new Error(error));
    else kept?.(reply);
  });
  let last = 0;
  const ask = (name) => (...given) => new Promise((kept, broken) => {
    waiting.set(++last, [kept, broken]);
    model.send({ id: last, name, given });
  });
  return Object.fromEntries(QUESTIONS.map((name) => [name, ask(name)]));
}

export default { render({ model, el }) { mount(el.appendChild(document.createElement("div")), asking(model)); } };
"""


def answer_message(session: Session, question: object) -> dict[str, Any]:
    """The reply to a message, or one line that says why there is none."""
    number = question.get("id") if isinstance(question, dict) else None
    try:
        if not isinstance(question, dict) or question.get("name") not in QUESTIONS:
            raise PunchcardError(f"{shortened(question)} is not a question: there are {', '.join(QUESTIONS)}")
        given = list(question.get("given") or [])
        more = given.pop() if given and isinstance(given[-1], dict) else {}
        return {"id": number, "reply": session.answer(question["name"], given, more)}
    except PunchcardError as error:
        return {"id": number, "error": str(error)}


def widget(session: Session) -> AnyWidget:
    """The page of a session, to be shown by a notebook."""
    from anywidget import AnyWidget

    module = f"{page.module()}\nconst QUESTIONS = {list(QUESTIONS)!r};\n{GLUE}"

    class View(AnyWidget):
        """A view of a run; `session` is what it asks."""

        _esm = module
        _css = page.stylesheet()

        def __init__(self) -> None:
            super().__init__()
            self.session = session
            self.on_msg(lambda _, question, buffers: self.send(answer_message(session, question)))

    return View()


@checked
def view(machine: Machine[Program, Any], program: Program, *, input: bytes = b"", max_steps: int | None = None
         ) -> AnyWidget | Still:
    """For notebooks: a widget that steps through a run by loops, layers and heads.

        punchcard.view(machine, program)

    input       the bytes that the program reads
    max_steps   instructions after which the run ends, default: set by the machine

    Without the package anywidget, a picture of the card.
    """
    machine.check_type(program)
    session = Session(machine, program, input=input, max_steps=max_steps)
    try:
        import anywidget  # noqa: F401
    except ImportError:
        return Still(machine, program)
    return widget(session)


class Still:
    """A picture in place of the widget, and how to get that."""

    def __init__(self, machine: Machine[Any, Any], program: object) -> None:
        self._machine, self._program = machine, program

    def __repr__(self) -> str:
        return "<a still picture: pip install 'punchcard[view]' for the view that steps through a run>"

    def _repr_html_(self) -> str:
        from punchcard.viewer.tables import card_svg

        machine, program = self._machine, self._program
        card = card_svg(machine.layout, machine.pack(program), names=lambda column: machine.column_name(column, program))
        return f"<div>{card}<p>The view that steps through a run: <code>pip install 'punchcard[view]'</code></p></div>"
