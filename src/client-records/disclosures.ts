import { Injectable } from '@nestjs/common';
import { Audit } from '../access/audit/audit.js';
import { Problem } from '../http/problem/problem.js';
import { decodeCursor, type Page, type PageQuery, pageOf } from '../http/request/page.js';
import type { DisclosureResponse } from './client-records.dto.js';
import { DisclosuresRepository, type PlacedDisclosure } from './disclosures.repository.js';

/** Where a page ended: the last call, the last request by its moment and session, and the last entry of the trail. */
type Place = [call: string, requestedAt: string, session: string, entry: string];

/** Behind everything, which comes first. */
const NEWEST: Place = [
  '999999999999999999',
  '9999-12-31T00:00:00Z',
  'ffffffff-ffff-ffff-ffff-ffffffffffff',
  '999999999999999999',
];

/** An accounting of disclosures (45 CFR 164.528). */
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
    const place = decodeCursor<Place>(cursor, 'bigint', 'time', 'uuid', 'bigint') ?? NEWEST;
    const [call, requestedAt, session, entry] = place;
    const [calls, requests, reads] = await Promise.all([
      this.disclosures.calls(client, call, limit + 1),
      this.disclosures.requests(client, [requestedAt, session], limit + 1),
      this.disclosures.reads(client, entry, limit + 1),
    ]);
    const rows = merged(place, [
      calls.map((row) => passing(row, ([, ...rest]) => [row.place, ...rest])),
      requests.map((row) => passing(row, ([first, , , last]) => [first, ...row.place, last])),
      reads.map((row) => passing(row, ([first, at, id]) => [first, at, id, row.place])),
    ]);
    return pageOf(
      rows,
      limit,
      (row) => row.place,
      ({ disclosure }) => disclosure,
    );
  }
}

/** A disclosure, and where a page stands once it was shown. */
interface Passing {
  disclosure: DisclosureResponse;
  after: (place: Place) => Place;
}

function passing({ place: _, ...disclosure }: PlacedDisclosure<unknown>, after: Passing['after']): Passing {
  return { disclosure, after };
}

/** The sources as one list, the newest first; each goes on behind its own last one, so that none is passed over. */
function merged(from: Place, sources: Passing[][]): { disclosure: DisclosureResponse; place: Place }[] {
  let place = from;
  const left = sources.map((source) => [...source]);
  const rows: { disclosure: DisclosureResponse; place: Place }[] = [];
  for (;;) {
    const [newest] = left
      .filter(([head]) => head)
      .toSorted(([one], [other]) => (other?.disclosure.at.getTime() ?? 0) - (one?.disclosure.at.getTime() ?? 0));
    const next = newest?.shift();
    if (!next) return rows;
    place = next.after(place);
    rows.push({ disclosure: next.disclosure, place });
  }
}
