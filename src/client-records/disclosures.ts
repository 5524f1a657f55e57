import { Injectable } from '@nestjs/common';
import { Audit } from '../access/audit/audit.js';
import { Problem } from '../http/problem/problem.js';
import { decodeCursor, type Page, type PageQuery, pageOf } from '../http/request/page.js';
import type { DisclosureResponse } from './client-records.dto.js';
import { type DisclosurePlace, DisclosuresRepository } from './disclosures.repository.js';

/** An accounting of disclosures (45 CFR 164.528): repeated ones are one entry, as (b)(3) allows. */
@Injectable()
export class Disclosures {
  constructor(
    private readonly disclosures: DisclosuresRepository,
    private readonly audit: Audit,
  ) {}

  /** What of a client went to the platform, and who was given it here, the newest first. @throws {Problem} 404 */
  async list(externalId: string, { limit, cursor }: PageQuery): Promise<Page<DisclosureResponse>> {
    const client = await this.disclosures.find(externalId);
    if (!client)
      throw new Problem(404, 'client-not-found', 'No client with this external id was ever known; check the id.');
    this.audit.about('client', client.externalId);
    const place = decodeCursor<DisclosurePlace>(cursor, 'time', 'time', 'string');
    return pageOf(
      await this.disclosures.list(client, place, limit + 1),
      limit,
      ({ asOf, at, mark }): DisclosurePlace => [asOf.toISOString(), at.toISOString(), mark],
      ({ asOf: _, mark: __, ...disclosure }) => disclosure,
    );
  }
}
