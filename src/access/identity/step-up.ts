import { applyDecorators, SetMetadata } from '@nestjs/common';
import type { Reflector } from '@nestjs/core';
import { ApiExtension } from '@nestjs/swagger';
import type { FastifyRequest } from 'fastify';
import { Problem } from '../../http/problem/problem.js';

const STEP_UP = Symbol('notebridge:step-up');

type Body = Readonly<Record<string, unknown>>;

/**
 * In a browser session, the route needs a sign-in of the last five minutes and a reason. A caller with a key needs
 * neither.
 *
 * @param isNeeded of a body, if the route is harmless with other bodies
 */
export function StepUp(isNeeded: (body: Body) => boolean = () => true): MethodDecorator {
  return applyDecorators(SetMetadata(STEP_UP, isNeeded), ApiExtension('x-step-up', true));
}

/** @throws {Problem} 403 `step-up-required`, 400 `purpose-required` */
export function requireStepUp(reflector: Reflector, handler: () => unknown, request: FastifyRequest): void {
  const isNeeded = reflector.get<((body: Body) => boolean) | undefined>(STEP_UP, handler);
  const session = request.principal?.session;
  if (!session || !isNeeded?.((request.body ?? {}) as Body)) return;
  if (!session.isConfirmed)
    throw new Problem('step-up-required', 'This needs a sign-in within the last five minutes. Confirm your identity.');
  if (request.purpose === undefined)
    throw new Problem('purpose-required', 'This needs a reason: a code or a ticket id in Notebridge-Purpose.');
}
