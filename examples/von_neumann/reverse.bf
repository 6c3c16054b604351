Reads a text and writes it backwards
The end of the input is read as 0

>,[>,]   every character in a cell of its own; the cell before them stays 0
<[.<]    and back to that cell
