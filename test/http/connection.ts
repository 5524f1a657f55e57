import { once } from 'node:events';
import { createConnection, type Socket } from 'node:net';

/** Opens a connection to a service and sends some bytes on it. */
export function connectTo({ url }: { url: string }, sent: string | Buffer = ''): Socket {
  const socket = createConnection({ port: Number(new URL(url).port), host: '127.0.0.1', noDelay: true });
  // A connection that is closed before all that was sent is read ends with a reset.
  socket.on('error', () => undefined);
  if (sent.length > 0) socket.write(sent);
  return socket;
}

/** The head of a request, with an empty line after it. */
export function headOf(method: string, path: string, headers: Readonly<Record<string, string | number>>): string {
  const lines = Object.entries({ host: 'x', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`;
}

/** The first bytes that arrive; an empty text when the connection closes without any. */
export async function firstAnswer(socket: Socket): Promise<string> {
  const [chunk] = (await Promise.race([once(socket, 'data'), once(socket, 'close')])) as [Buffer | boolean];
  return typeof chunk === 'boolean' ? '' : chunk.toString('latin1');
}

/** Everything that arrives until the connection closes. */
export async function wholeAnswer(socket: Socket): Promise<string> {
  let text = '';
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1');
  });
  if (!socket.closed) await once(socket, 'close');
  return text;
}
