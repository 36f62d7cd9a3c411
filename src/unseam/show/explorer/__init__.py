"""`unseam explore`: a trained model in the hand. A local page that decodes as you move, and shows why it moves so.

subject.py   one member as the page sees it: encode, decode, its latents in order
gallery.py   the opened runs, and which of their members can be shown
point.py     what there is to know at one point: Jacobian, cosines, singular values, cost, curves
films.py     traversals, and the way between two points, as a file to keep
upload.py    a picture or a list of numbers that the user drops onto the page
checks.py    what a request must look like
guard.py     who may ask: this machine's browser, from this page
api.py       requests -> answers
server.py    the socket and the server
assets/      the page itself: HTML, CSS and JavaScript modules, no build step
"""
