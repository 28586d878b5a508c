from fastapi import FastAPI, Request, WebSocket
from fastapi.responses import StreamingResponse

app = FastAPI()

@app.get('/items/')
def items(request: Request, page: int = 1):
    return {'page': page, 'address': str(request.url)}

@app.get('/no-slash')
def no_slash(request: Request):
    return {'address': str(request.url)}

@app.get('/files/{rest:path}')
def files(request: Request, rest: str):
    return {'rest': rest, 'raw': request.scope['raw_path'].decode()}

@app.post('/echo')
async def echo(request: Request):
    size = 0
    async for piece in request.stream():
        size += len(piece)
    return {'size': size, 'type': request.headers.get('content-type')}

@app.get('/stream')
def stream():
    return StreamingResponse(('data: %d\n\n' % i for i in range(100)), media_type='text/event-stream')

@app.websocket('/ws')
async def ws(socket: WebSocket):
    await socket.accept()
    while True:
        await socket.send_text('heard ' + await socket.receive_text())
