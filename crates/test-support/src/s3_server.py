"""Serves S3 from memory on a free port of the loopback interface, which is the first line of the output.

The server is moto's. It examines and writes an object in two steps; S3 does both at once for a request with
a condition, and so does this server. It ends when its input ends.
"""

import sys
import threading

from moto.s3.responses import S3Response
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

lock = threading.Lock()
put_object = S3Response.put_object


def put_object_alone(self):
    with lock:
        return put_object(self)


S3Response.put_object = put_object_alone
app = DomainDispatcherApplication(create_backend_app)
server = make_server("127.0.0.1", 0, app, threaded=True)
print(server.server_port, flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
