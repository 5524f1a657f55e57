import { Matches } from 'class-validator';
import { END_USER_VALUE } from '../access/identity/end-user.js';
import { PageResponse } from '../http/request/page.js';

export class LegalHoldRequest {
  /**
   * Why, as the id of a case or a ticket, or a code: no text and no name, because the audit log keeps it
   *
   * @example CASE-2026-17
   */
  @Matches(END_USER_VALUE, {
    message: 'must be an id or a code, no name: 1 to 128 letters, digits and . _ : / | -',
  })
  reason!: string;
}

/**
 * Data of a client sent to the platform, or a request about the client. Repeats by the same recipient, with the same
 * outcome and purpose, are one disclosure (45 CFR 164.528(b)(3)).
 */
export class DisclosureResponse {
  /** The time, or the last time of repeats */
  at!: Date;
  /** The first time within the retention period of the audit log */
  firstAt!: Date;
  /** The number of repeats, at least 1 */
  count!: number;
  /** `platform`, or `ehr` for the owner of an API key */
  recipient!: 'platform' | 'ehr';
  /**
   * The operation of the platform, or the request to this service
   *
   * @example createClient
   */
  action!: string;
  /** The outcome of the request; `sent` for the platform */
  outcome!: string;
  /** Internal ids of the sessions */
  sessions!: string[];
  keyId!: string | null;
  keyName!: string | null;
  /** The end user that the EHR named */
  onBehalfOf!: string | null;
  purpose!: string | null;
  /**
   * Why an accounting for the individual may leave this out (45 CFR 164.528(a)(1)): `treatment-payment-operations`,
   * `individual` or `involved-in-care`, by the purpose; null if it may not
   */
  excluded!: string | null;
  /**
   * False if the request showed more than 50 clients or sessions, and this client may be one of them: the audit log keeps
   * only the smallest and the largest of their ids
   */
  isCertain!: boolean;
}

export class DisclosurePageResponse extends PageResponse {
  items!: DisclosureResponse[];
}
