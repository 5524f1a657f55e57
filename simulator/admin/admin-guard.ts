import type { FastifyInstance } from 'fastify';
import { Refusal } from '../refusal.js';

const LOOPBACK = /^(::1|(::ffff:)?127\.\d+\.\d+\.\d+)$/;

/** The admin API needs no key, so only this machine may use it. */
export function guardAdmin(app: FastifyInstance): void {
  app.addHook('onRequest', async (request) => {
    if (!LOOPBACK.test(request.socket.remoteAddress ?? '')) {
      throw new Refusal(403, 'The admin API answers on loopback only.');
    }
  });
}
