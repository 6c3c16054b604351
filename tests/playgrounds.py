"""The playground's page for tests: programs are read and run in it, and its cards come back."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np

from punchcard.card.formats import AnyArray
from tests.browsing import Watched

READ = """([language, texts]) => {
  const { playground } = document.getElementById("punchcard-view");
  return texts.map((text) => {
    try {
      const { words, lines, labels, rules, states, symbols, tape, head } = playground.read(language, text);
      return { words, lines, labels: labels && [...labels], rules: rules && [...rules], states, symbols, tape, head };
    } catch (error) {
      return { problem: error.message, shown: error.shown ?? null };
    }
  });
}"""
RUN = """async ([language, text, bits, input, moments]) => {
  const { playground } = document.getElementById("punchcard-view");
  playground.settle(language, bits);
  playground.text.value = text;
  playground.input.value = input;
  const view = await playground.run();
  const told = [...playground.problem.children].map((one) => one.textContent).join("\\n");
  if (!playground.problem.hidden) return { problem: told };
  const { source } = view;
  source.spent = Infinity; // nobody runs ahead meanwhile
  const base64 = (card) => {
    const bytes = new Uint8Array(card.slice().buffer);
    let binary = "";
    for (let i = 0; i < bytes.length; i += 32768) binary += String.fromCharCode(...bytes.subarray(i, i + 32768));
    return btoa(binary);
  };
  const { about } = source.data;
  const cards = moments.filter((one) => about.loops === null || one <= 2 * source.layers * about.loops)
    .map((one) => [base64(source.card(one)), one ? base64(source.made(one)) : null]);
  return { cards, loops: about.loops, ended: about.ended, labels: about.labels, hash: window.location.hash };
}"""
TO_THE_END = """async () => {
  const { source } = document.getElementById("punchcard-view").playground.view;
  source.spent = 0;
  for (let loop = 1; source.data.about.loops === null && loop < 100000; loop++) source.card(2 * source.layers * loop);
  const { loops, ended } = source.data.about;
  const { output, message } = source.facts[loops] ?? {};
  return { loops, ended, output, message };
}"""


def read(watched: Watched, language: str, texts: Sequence[str]) -> list[Any]:
    """What the page makes of texts, or the problem that it has with each."""
    found: list[Any] = watched.page.evaluate(READ, [language, list(texts)])
    return found


def run(watched: Watched, text: str, language: str = "subleq", *, bits: int = 16, input: str = "",
        moments: Sequence[int] = ()) -> Any:
    """Run a program; its cards at moments, each as it is and as the half layer before it left it."""
    return watched.page.evaluate(RUN, [language, text, bits, input, list(moments)])


def to_the_end(watched: Watched) -> Any:
    """How the run that is shown ends."""
    return watched.page.evaluate(TO_THE_END)


def entries(text: str, columns: int) -> AnyArray:
    """A card that came from the page: rows by columns."""
    return np.frombuffer(base64.b64decode(text), "<f8").reshape(columns, -1).T
