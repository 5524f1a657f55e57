import { OptionalMoment, OptionalOneOf, OptionalText } from '../../http/request/fields.js';
import { PageQuery } from '../../http/request/page.js';
import { PLATFORM_ID_MAX } from '../../platform/contract/wire-types.js';
import { type CodeOf, codesOf, WORDS } from '../../words/words.js';

const STATES = codesOf(WORDS.sessionState);
const ORDERS = ['oldest-first', 'newest-first'] as const;

/** `GET /v1/sessions` */
export class SessionsQuery extends PageQuery {
  /** External id of the provider */
  @OptionalText(512)
  provider?: string;

  /** External id of a client */
  @OptionalText(512)
  client?: string;

  /** partnerAppointmentId */
  @OptionalText(PLATFORM_ID_MAX)
  appointment?: string;

  @OptionalOneOf(STATES)
  state?: CodeOf<'sessionState'>;

  @OptionalMoment()
  updatedSince?: string;

  /** By last change; defaults to oldest-first, so that a returning reader gets only changed sessions */
  @OptionalOneOf(ORDERS)
  order?: (typeof ORDERS)[number];
}

/** `GET /v1/sessions/refreshes` */
export class PendingQuery {
  /** Only this session: our id or the platform's */
  @OptionalText(PLATFORM_ID_MAX)
  session?: string;
}

/** `POST /v1/sessions/refreshes`: exactly one of the two. */
export class RefreshRequest extends PendingQuery {
  /** Every session created or changed since */
  @OptionalMoment()
  since?: string;
}
