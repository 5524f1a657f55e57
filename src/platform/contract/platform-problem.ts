import { Problem } from '../../http/problem/problem.js';
import { PlatformError } from './platform-errors.js';

/** Seconds that a caller is asked to wait: unless the platform named a wait, and until an operator may have mended the key. */
const RETRY_SECONDS = 5;
const UNAUTHORIZED_RETRY_SECONDS = 60;

/**
 * Turns the failure of a call that a caller waits for into the problem it is answered with. What the platform said to a
 * rejection goes to the caller as `platformMessage`: it may hold personal data, so it is never part of `detail`.
 *
 * @param error whatever was thrown; what is no {@link PlatformError} comes back as it is
 * @param what names the thing in a sentence, such as "this session"
 */
export function platformProblem(error: unknown, what: string): unknown {
  if (!(error instanceof PlatformError)) return error;
  const later = (type: string, detail: string, retryAfterSeconds: number) =>
    new Problem(503, type, detail, { retryAfterSeconds });
  switch (error.kind) {
    case 'not-configured':
      return notConfigured(error.missing.map((setting) => `PLATFORM_CONTRACT: ${setting}`));
    case 'not-found':
      return new Problem(404, 'not-on-platform', `The platform does not know ${what}; check the ids it was given.`);
    case 'rejected':
      return new Problem(400, 'platform-rejected', `The platform rejected ${what}; platformMessage says why.`, {
        extensions: { platformMessage: error.platformMessage ?? null },
      });
    case 'unauthorized': {
      const detail = 'The platform refuses our key; an operator must look at it.';
      return later('platform-unauthorized', detail, UNAUTHORIZED_RETRY_SECONDS);
    }
    case 'rate-limited': {
      const seconds = error.retryAfterMs === undefined ? RETRY_SECONDS : error.retryAfterMs / 1000;
      return later('platform-rate-limited', 'The platform asks for patience; send the request again later.', seconds);
    }
    case 'unreachable':
      return later(
        'platform-unreachable',
        'The platform can not be reached; send the request again later.',
        RETRY_SECONDS,
      );
    case 'unknown-outcome':
      return platformUnclear(what);
  }
}

/** The answer to a call of unknown outcome. @param what names the thing in a sentence */
export function platformUnclear(what: string): Problem {
  return new Problem(504, 'platform-unclear', `The platform gave no readable answer about ${what}; look again later.`);
}

/** The answer of a capability that lacks settings, named as `GET /v1/capabilities` names them. */
export function notConfigured(missing: readonly string[]): Problem {
  return new Problem(501, 'not-configured', `This is switched off; set ${missing.join(', ')} and restart.`, {
    extensions: { missing },
  });
}
