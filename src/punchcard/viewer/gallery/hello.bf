Prints Hi there! and ends the line

Cell 0 counts the rounds of a loop; the next ones become 70 110 30 10
++++++++++[>+++++++>+++++++++++>+++>+<<<<-]
>++.            H 72
>-----.         i 105
>++.            blank 32
<+++++++++++.   t 116
------------.   h 104
---.            e 101
+++++++++++++.  r 114
-------------.  e 101
>+.             exclamation mark 33
>.              line end 10
