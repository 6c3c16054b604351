"""Hot paths of a card as native code: what comes back again and again is compiled with constants (`docs/lowering.md`)."""
