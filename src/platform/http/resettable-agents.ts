import { type AgentOptions, Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent, type AgentOptions as HttpsAgentOptions } from 'node:https';
import { connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/** The TCP connection under each TLS connection: only that one can be reset. */
const under = new WeakMap<Duplex, Socket>();

type Created = (error: Error | null, stream: Duplex) => void;

/** Connects over TLS as Node does, and remembers what lies under it. */
class OverKnownTcp extends HttpsAgent {
  override createConnection(options: HttpsAgentOptions, callback?: Created): Duplex | null | undefined {
    const tcp = connect(options as Parameters<typeof connect>[0]);
    const secure = super.createConnection({ ...options, socket: tcp } as HttpsAgentOptions, callback);
    if (secure) under.set(secure, tcp);
    // The TLS connection tells its owner of everything that ends this one.
    tcp.on('error', () => undefined);
    return secure;
  }
}

/** Agents for both protocols whose connections `resetConnection` can end at once. */
export function resettableAgents(options: AgentOptions): { httpAgent: HttpAgent; httpsAgent: HttpsAgent } {
  return { httpAgent: new HttpAgent(options), httpsAgent: new OverKnownTcp(options) };
}

/**
 * Ends a connection by RST (RFC 9293, 3.10.7.4): the kernel then drops what it has not delivered yet. After an orderly
 * close it would go on delivering for minutes, long after nobody reckons with the request any more.
 */
export function resetConnection(socket: Socket): void {
  (under.get(socket) ?? socket).resetAndDestroy();
}
