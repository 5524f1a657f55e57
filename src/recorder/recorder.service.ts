import { Injectable } from '@nestjs/common';
import { Audit } from '../audit/audit.js';
import { Env } from '../config/env.js';
import { Problem } from '../http/problem/problem.js';
import { ResolvedPartiesRepository } from '../people/store/resolved-parties.js';
import { PlatformClient } from '../platform/clients/platform-client.js';
import { requireCapability } from '../platform/contract/capabilities.js';
import { Contract } from '../platform/contract/contract.js';
import { platformProblem } from '../platform/contract/platform-errors.js';
import { RequestCalls } from '../platform/pauses/request-calls.js';
import type { LaunchRequest } from './recorder.dto.js';
import { recorderUrl, redirectFault } from './recorder-url.js';

/** Opens the browser recorder for a provider. Only the returned address contains the token. */
@Injectable()
export class RecorderService {
  constructor(
    private readonly env: Env,
    private readonly contract: Contract,
    private readonly people: ResolvedPartiesRepository,
    private readonly platform: PlatformClient,
    private readonly calls: RequestCalls,
    private readonly audit: Audit,
  ) {}

  /**
   * The address that opens the recorder for a session with a client.
   *
   * @throws {Problem} 501 `not-configured`; 422 `redirect-not-allowed`, and 422 or 409 as for `parties`; 503; 504
   */
  async launch(request: LaunchRequest, signal: AbortSignal): Promise<string> {
    const domain = this.partnerDomain();
    const { provider, client, variant } = request;
    const redirectUrl = request.redirectUrl ?? undefined;
    const fault = redirectUrl === undefined ? undefined : redirectFault(redirectUrl, this.env.REDIRECT_ALLOWED_ORIGINS);
    if (fault !== undefined)
      throw new Problem('redirect-not-allowed', `redirectUrl ${fault}.`, { pointer: '/redirectUrl' });
    const people = await this.people.require({ provider, client });
    this.audit.about('client', client);
    const token = await this.token(provider, people.provider.platformUserId, signal);
    const contractId = people.client?.platformUserId;
    return recorderUrl(domain, 'recorder', token, { variant, contractId, redirectUrl });
  }

  /** The address where a provider finishes interrupted uploads. @throws {Problem} as {@link launch} */
  async recover(provider: string, signal: AbortSignal): Promise<string> {
    const domain = this.partnerDomain();
    const people = await this.people.require({ provider });
    const token = await this.token(provider, people.provider.platformUserId, signal);
    return recorderUrl(domain, 'unuploaded-sessions', token);
  }

  private partnerDomain(): string {
    requireCapability('recorder', this.contract, this.env);
    return this.env.PLATFORM_PARTNER_DOMAIN ?? '';
  }

  /** Commits the audit entry first, so that every launch has one. */
  private async token(provider: string, providerUserId: string, signal: AbortSignal): Promise<string> {
    this.audit.about('provider', provider);
    await this.audit.commitIntent();
    const ask = () => this.platform.initiateAuth(providerUserId, { signal });
    return this.calls.make('initiateAuth', providerUserId, ask, signal).catch((error: unknown) => {
      throw platformProblem(error);
    });
  }
}
