"""WSGI, which Flask and Django read the path from; and the files of http.server."""
import os, sys
from http.server import SimpleHTTPRequestHandler
from wsgiref.simple_server import make_server, WSGIRequestHandler

class Quiet(WSGIRequestHandler):
    protocol_version = 'HTTP/1.1'
    def log_message(self, *args): pass

class Files(SimpleHTTPRequestHandler):
    def __init__(self): self.directory = '/root'

def application(environ, start_response):
    path = environ['PATH_INFO']
    file = Files().translate_path(environ['RAW_PATH'])[len('/root'):] or '/'
    start_response('200 OK', [('Content-Type', 'application/octet-stream')])
    return [path.encode('latin-1') + b'\n' + file.encode('utf-8', 'surrogateescape')]

class Handler(Quiet):
    def get_environ(self):
        environ = super().get_environ()
        environ['RAW_PATH'] = self.path
        return environ

make_server('127.0.0.1', int(sys.argv[1]), application, handler_class=Handler).serve_forever()
