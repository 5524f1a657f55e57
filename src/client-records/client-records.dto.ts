import { PageResponse } from '../http/request/page.js';

/**
 * Something of a client that went to the platform, or that a key did with it or was shown of it. What was repeated by the
 * same one, with the same outcome and for the same purpose, is one (45 CFR 164.528(b)(3)).
 */
export class DisclosureResponse {
  /** When it was, or was last */
  at!: Date;
  /** When it was first, within what the retention keeps */
  firstAt!: Date;
  /** How often it was */
  count!: number;
  /** `platform`, or `ehr`: whoever has the key */
  recipient!: 'platform' | 'ehr';
  /**
   * The platform's operation, or the request here
   *
   * @example createClient
   */
  action!: string;
  /** The outcome; `sent` for an update of a session without a failure */
  outcome!: string;
  /** Our ids of the sessions that it was about */
  sessions!: string[];
  keyId!: string | null;
  keyName!: string | null;
  /** The EHR's end user, as the EHR named him */
  onBehalfOf!: string | null;
  purpose!: string | null;
}

export class DisclosurePageResponse extends PageResponse {
  items!: DisclosureResponse[];
}
