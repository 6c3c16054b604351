"""The notebooks as pages, with what their cells give: each is executed when the site is built."""

from __future__ import annotations

from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
FOLDER = ROOT / "examples" / "notebooks"


def pages() -> dict[str, str]:
    return {f"notebooks/{path.stem}.md": page(executed(path), path.name) for path in sorted(FOLDER.glob("*.ipynb"))}


def executed(path: Path) -> Any:
    """The notebook with its outputs. A cell that fails ends the build."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(FOLDER)}}).execute()
    return notebook


def page(notebook: Any, name: str) -> str:
    text = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            text.append(cell.source)
        else:
            text.append(f"```python\n{cell.source}\n```")
            text += [shown for output in cell.outputs if (shown := given(output))]
    text.append(f"*This page is `examples/notebooks/{name}`, executed when the site was built.*")
    return "\n\n".join(text) + "\n"


def given(output: Any) -> str:
    """What a cell gave, as Markdown."""
    if output.output_type == "stream":
        return f"```text\n{output.text.rstrip()}\n```"
    data = output.get("data", {})
    if "text/html" in data:
        return f'<div class="output" markdown="0">\n{data["text/html"]}\n</div>'
    if "image/svg+xml" in data:
        return f'<div class="output" markdown="0">\n{data["image/svg+xml"]}\n</div>'
    if "image/png" in data:
        return f"![what the cell draws](data:image/png;base64,{data['image/png'].strip()})"
    return f"```text\n{data['text/plain']}\n```" if "text/plain" in data else ""
