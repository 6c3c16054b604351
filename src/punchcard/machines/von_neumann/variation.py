"""Random images, and images in which the next instruction finds something else."""

from __future__ import annotations

from dataclasses import replace

from punchcard.machines.variation import DATA, POINTER, ChangedProgram, Variation
from punchcard.machines.von_neumann.isa import Image, ImageState


class ImageVariation(Variation):
    """Of the three words of an instruction: a word that it uses, one of its two addresses, or its target."""

    def random(self) -> Image:
        size, memory = self._sizes()
        instructions = max(1, min(memory // 3 - 2, size // 2 // 3))
        data = range(3 * instructions, memory)
        words = [word for i in range(instructions) for word in (
            self.pick(data), self.pick(data),
            3 * i + 3 if i + 1 < instructions and self.below(2) else 3 * self.below(instructions))]
        return Image((*words, *(self.below(size) for _ in data)))

    def changed(self, program: Image, kind: str, state: ImageState) -> ChangedProgram | None:
        (size, memory), counter = self._sizes(), state.program_counter
        words = [word % size for word in program.words]
        operand = counter + self.below(2)
        if counter + 2 >= len(words):
            return None
        if kind == DATA:
            place, value = words[operand], self.below(size)
        elif kind == POINTER:
            place, value = operand, memory - 1 - self.below(memory // 3)
        else:
            place, value = counter + 2, 3 * self.below(max(1, min(memory, len(words)) // 3 - 2))
        if place >= len(words) or value >= size:
            return None  # a port, or a cell beyond the image
        about = f"{program.name_of(place)}: {words[place]} -> {value}"
        words[place] = value
        return ChangedProgram(replace(program, words=tuple(words)), kind, about)

    def _sizes(self) -> tuple[int, int]:
        """How many words there are, and how many cells."""
        return 1 << self.machine.options["word_bits"], self.machine.options["memory"]
