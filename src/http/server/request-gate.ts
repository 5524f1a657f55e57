import type { OpenAPIObject } from '@nestjs/swagger';
import type { FastifyRequest } from 'fastify';

/** What the requests of a second are counted by. */
export interface CountedBy {
  /** `unknown-key`: a key or session that is not among the valid ones, so the database has to be asked. */
  readonly kind: 'valid-key' | 'unknown-key' | 'no-key';
  /** The hash of a valid key or session, otherwise the address. */
  readonly id: string;
}

/** Decides by its headers whether a request may continue. */
export abstract class RequestGate {
  /** What a request is counted by. Asks no database. */
  abstract countedBy(request: FastifyRequest): CountedBy;

  /** @throws {Problem} 401, 403 or 503 if a request may not continue */
  abstract admit(request: FastifyRequest): Promise<void>;

  /** Receives each error of a request before it is answered. @throws the error to answer instead */
  abstract refused(error: unknown, request: FastifyRequest): Promise<void>;

  /** Adds to each operation what its caller needs, and its problems. */
  abstract describe(document: OpenAPIObject): OpenAPIObject;
}
