import { Transform } from 'class-transformer';
import { fieldRule } from '../http/request/fields.js';
import { isEmailAddress, isExternalId } from '../people/rules/person-field-rules.js';

/** The kind of a search result. */
type FoundKind = 'provider' | 'client' | 'session' | 'compliance-job' | 'import' | 'delivery';

const IsSearchable = fieldRule(
  'isSearchable',
  (value) => isExternalId(value) || isEmailAddress(value),
  'must be an id or an email address without control characters, of at most 200 characters',
);

/** `POST /v1/search`. In the body, because an email must not appear in a URL. */
export class FindRequest {
  /**
   * The whole id or email
   *
   * @example C-1
   */
  @Transform(({ value }) => (typeof value === 'string' ? value.trim() : value))
  @IsSearchable()
  text!: string;
}

/** A result of a search, with the id or the email searched for. */
export class FoundResponse {
  kind!: FoundKind;
  /** Its id in the API: the external id of a person */
  id!: string;
  /** The match: an id of this service or of the EHR, a former external id, a platform id, an email or an appointment */
  matched!: 'id' | 'former-id' | 'platform-id' | 'email' | 'appointment';
  state!: string;
  /** When an import or a delivery arrived */
  updatedAt!: Date;
}

/** The results of a search. */
export class FindResponse {
  /** At most 10 */
  items!: FoundResponse[];
  /** True if there are more, such as the sessions of one appointment */
  more!: boolean;
}
