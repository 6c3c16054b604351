/**
 * The page that steps through a run: `mount(element, source)`.
 *
 * A run is a line of moments. With L layers, moment 2 L loop + 2 layer + stage is the card before that layer (stage 0) or
 * after its attention (stage 1). A source answers, always with a promise, what `punchcard.view.protocol` describes:
 *
 *     about()   state(moment)   attention(loop, layer, head)   explain(moment, column)
 *     weights(layer, {head} or {unit})   find(what, moment, {forward, ...})
 *
 * There are three sources. The server's page has no data and asks POST /api/NAME with the arguments as a JSON object.
 * A file has its data in <script type="application/json" id="punchcard-data">, made by `page.document(title, data)`:
 *
 *     {kind: "recorded", about, states: [state, ...], attention: {"loop/layer/head": reply}, weights: {"layer/head": reply}}
 *         A state has `entries`, or instead `changes`: [[row, column, value], ...] against the state before it in the list
 *         (then `columns` may be missing too). States that are not there cannot be shown.
 *     {kind: "computed", about, model, card, loops: [fact, ...], weights: {"layer/head": reply}}
 *         The model is inside, and the page computes every card from the equation. `model` and `card` come from `page/data.py`.
 *         Fact number i is what the loop's card does not say by itself: a state without its entries, for moment 2 L i, and
 *         `changes`: [[row, column, value], ...] that a host made to the card between the loops (input for a port).
 *         The last fact is the end of the run.
 */
