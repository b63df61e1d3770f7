"""server.py FOLDER: serves its files on a free port of 127.0.0.1, slowly and with byte ranges; prints the port."""
import http.server
import os
import sys
import time


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        path = os.path.join(sys.argv[1], os.path.basename(self.path))
        with open(path, "rb") as f:
            data = f.read()
        start, given = 0, self.headers.get("Range", "")
        if given.startswith("bytes="):
            start = min(int(given[6:].split("-")[0] or 0), len(data))
        self.send_response(206 if given else 200)
        if given:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        try:
            for at in range(start, len(data), 1 << 16):
                self.wfile.write(data[at:min(at + (1 << 16), len(data))])
                time.sleep(0.01)
        except OSError:
            pass

    def log_message(self, *args):
        pass


with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
    print(server.server_address[1], flush=True)
    server.serve_forever()
