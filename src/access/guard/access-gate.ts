import { type CanActivate, type ExecutionContext, Injectable, RequestMethod } from '@nestjs/common';
import { METHOD_METADATA, PATH_METADATA } from '@nestjs/common/constants.js';
import { DiscoveryService, MetadataScanner, Reflector } from '@nestjs/core';
import type { OpenAPIObject } from '@nestjs/swagger';
import type { FastifyRequest } from 'fastify';
import { Audit } from '../../audit/audit.js';
import { sourceNetwork } from '../../audit/source-address.js';
import { Env } from '../../config/env.js';
import { problemOf } from '../../http/problem/fault.js';
import { Problem } from '../../http/problem/problem.js';
import { type CountedBy, RequestGate } from '../../http/server/request-gate.js';
import { Metrics } from '../../monitoring/metrics.js';
import { endUserOf } from '../identity/end-user.js';
import type { Scope } from '../identity/scope.js';
import { type AccessRequirement, neededScopes, type Principal } from '../identity/scopes.js';
import { requireStepUp } from '../identity/step-up.js';
import { unauthenticated } from '../identity/unauthenticated.js';
import { ApiKeysService } from '../keys/api-keys.service.js';
import { bearerToken, hashOf } from '../keys/key-format.js';
import { KnownKeys } from '../keys/known-keys.js';
import { BrowserSessionsService, refuseForged } from '../sign-in/browser-sessions.service.js';
import { sessionToken, signedOut } from '../sign-in/session-cookie.js';
import { describeAccess } from './openapi-access.js';

/** Identifies the caller of a request and requires its scopes, before the body is read. */
@Injectable()
export class AccessGate extends RequestGate {
  private routes: ReadonlyMap<string, AccessRequirement> | undefined;
  private readonly failures;

  constructor(
    private readonly discovery: DiscoveryService,
    private readonly scanner: MetadataScanner,
    private readonly reflector: Reflector,
    private readonly keys: ApiKeysService,
    private readonly sessions: BrowserSessionsService,
    private readonly audit: Audit,
    private readonly known: KnownKeys,
    private readonly env: Env,
    metrics: Metrics,
  ) {
    super();
    this.failures = metrics.counter('authentication_failures_total', 'Requests without a valid key or browser session');
  }

  /** A key counts on every route, because it may be looked up there; a session only where a caller is needed. */
  countedBy(request: FastifyRequest): CountedBy {
    const { authorization, cookie } = request.headers;
    const shown =
      bearerToken(authorization) ??
      (authorization === undefined && this.needs(request) !== 'public' ? sessionToken(cookie) : undefined);
    if (shown === undefined) return { kind: 'no-key', id: sourceNetwork(request) };
    const hash = hashOf(shown).toString('hex');
    return this.known.has(hash) ? { kind: 'valid-key', id: hash } : { kind: 'unknown-key', id: sourceNetwork(request) };
  }

  /** Admits a request to a controller's route. Requests for other routes pass. */
  async admit(request: FastifyRequest): Promise<void> {
    const needed = this.needs(request);
    if (needed !== 'public') await this.check(request, needed);
  }

  /** Records requests that are rejected before their handler, for their scope, body or form. */
  async refused(error: unknown, request: FastifyRequest): Promise<void> {
    if (!request.principal || request.reachedHandler) return;
    await this.audit.deny(request.principal, request, problemOf(error)?.type ?? 'internal-error');
  }

  describe(document: OpenAPIObject): OpenAPIObject {
    return describeAccess(document, (method, path) => this.neededFor(method, path.replaceAll(/\{(\w+)\}/g, ':$1')));
  }

  /** What the route of a request needs. */
  private needs({ method, routeOptions }: FastifyRequest): AccessRequirement {
    return this.neededFor(method === 'HEAD' ? 'GET' : method, routeOptions.url ?? '') ?? 'public';
  }

  /** What a controller's route needs, by its method and the router's pattern. */
  private neededFor(method: string, pattern: string): AccessRequirement | undefined {
    this.routes ??= this.routesOfControllers();
    return this.routes.get(`${method} ${pattern}`);
  }

  /**
   * Sets the request's principal, and the end user on whose behalf it calls.
   *
   * @throws {Problem} 401 `unauthenticated`, 400 `bad-on-behalf-of`, `bad-purpose` or `on-behalf-of-required`, 403 `forbidden-scope`
   */
  async check(request: FastifyRequest, needed: readonly Scope[]): Promise<void> {
    request.principal ??= await this.identify(request);
    const { scopes } = request.principal;
    Object.assign(request, endUserOf(request.headers));
    if (this.env.REQUIRE_ON_BEHALF_OF && !request.principal.session && request.onBehalfOf === undefined)
      throw new Problem('on-behalf-of-required', "Send the EHR's id of its user in Notebridge-On-Behalf-Of.");

    const missing = needed.find((scope) => !scopes.has(scope));
    if (missing)
      throw new Problem('forbidden-scope', `This key lacks the scope ${missing}. Use one that has it.`, {
        extensions: { scope: missing },
        headers: { 'www-authenticate': `Bearer realm="notebridge", error="insufficient_scope", scope="${missing}"` },
      });
  }

  /**
   * Identifies the caller by its key, or without one by its browser session. The database is asked each time, so that a
   * revoked one ends in every process at once; how often it is asked for unknown ones is limited (`countedBy`).
   */
  private async identify(request: FastifyRequest): Promise<Principal> {
    const { headers } = request;
    const byKey = headers.authorization !== undefined;
    const shown = byKey ? bearerToken(headers.authorization) : sessionToken(headers.cookie);
    if (shown === undefined) throw unauthenticated(false);
    if (!byKey) refuseForged(request, shown);
    const isInUse = headers['notebridge-in-use'] !== undefined;
    const principal = await (byKey ? this.keys.recognise(shown) : this.sessions.recognise(shown, isInUse));
    if (principal) {
      this.known.add(shown);
      return principal;
    }
    this.known.forget(shown);
    this.failures.inc();
    this.audit.countFailure(sourceNetwork(request));
    throw byKey ? unauthenticated(true) : signedOut();
  }

  /** What the routes of all controllers need, by their methods and the router's patterns. */
  private routesOfControllers(): Map<string, AccessRequirement> {
    const routes = new Map<string, AccessRequirement>();
    for (const { metatype, instance } of this.discovery.getControllers()) {
      if (typeof metatype !== 'function' || !instance) continue;
      const prototype = Object.getPrototypeOf(instance);
      for (const name of this.scanner.getAllMethodNames(prototype)) {
        const handler = prototype[name];
        const method: RequestMethod | undefined = Reflect.getMetadata(METHOD_METADATA, handler);
        if (method === undefined) continue;
        const needed = neededScopes(this.reflector, handler, metatype);
        for (const path of [Reflect.getMetadata(PATH_METADATA, handler)].flat()) {
          const segments = `${Reflect.getMetadata(PATH_METADATA, metatype)}/${path}`.split('/').filter(Boolean);
          routes.set(`${RequestMethod[method]} /${segments.join('/')}`, needed);
        }
      }
    }
    return routes;
  }
}

/** Requires the key and its scopes at the handler again, so that a route unknown to the gate stays closed, too. */
@Injectable()
export class AccessGuard implements CanActivate {
  constructor(
    private readonly reflector: Reflector,
    private readonly gate: AccessGate,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const needed = neededScopes(this.reflector, context.getHandler(), context.getClass());
    if (needed === 'public') return true;
    const request = context.switchToHttp().getRequest<FastifyRequest>();
    await this.gate.check(request, needed);
    requireStepUp(this.reflector, context.getHandler() as () => unknown, request);
    return true;
  }
}
