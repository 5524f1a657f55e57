import type { FastifyInstance, FastifyRequest } from 'fastify';

/** Decides by its headers alone whether a request may go on; another room knows keys and scopes. */
export abstract class RequestGate {
  /** @throws {Problem} 401, 403 or 503 when it may not */
  abstract admit(request: FastifyRequest): Promise<void> | void;
}

/** Asks the gate before anything of a body is read. Call it after other hooks that judge headers. */
export function installRequestGate(fastify: FastifyInstance, gate: RequestGate): void {
  fastify.addHook('onRequest', async (request) => {
    if (!request.is404) await gate.admit(request);
  });
}
