"""An application that takes its time to be imported."""

import threading

import isolated_app

threading.Event().wait(1.0)
app = isolated_app.app
