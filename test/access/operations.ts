import type { Scope } from '../../src/access/identity/scope.js';

/** Every operation of the API by the scopes it needs: methods and path. `!` marks those that need a step-up with any body. */
const TABLE: Record<
  | Exclude<Scope, 'invites:read'>
  | 'people:read sessions:read notes:read'
  | 'imports people:read'
  | 'any key'
  | 'nothing',
  string
> = {
  'people:read': `
    GET /v1/providers
    GET /v1/providers/{externalId}
    GET /v1/clients
    GET /v1/clients/{externalId}
    GET /v1/people.csv
    GET /v1/people/unknown-to-ehr
    GET /v1/people/platform-users/{platformUserId}
    POST /v1/people/search
    POST /v1/people/names
    POST /v1/people/trace
  `,
  'people:write': `
    PUT DELETE! /v1/providers/{externalId}
    POST /v1/providers/{externalId}/rename
    POST /v1/providers/{externalId}/resolve
    PUT DELETE! /v1/clients/{externalId}
    PUT /v1/clients/{externalId}/providers
    POST /v1/clients/{externalId}/rename
    POST! /v1/clients/{externalId}/merge
    POST /v1/clients/{externalId}/resolve
    POST /v1/people/resolve
    POST /v1/people/retry
  `,
  imports: `
    POST GET /v1/imports
    GET /v1/imports/{id}
    GET /v1/imports/{id}/rows
    GET /v1/imports/{id}/cancellation
    POST /v1/imports/{id}/apply
    POST /v1/imports/{id}/pause
    POST /v1/imports/{id}/resume
    POST /v1/imports/{id}/cancel
    POST /v1/imports/{id}/retry
    POST /v1/imports/{id}/mapping
    PATCH /v1/imports/{id}/rows
  `,
  subscriptions: `
    POST! GET /v1/subscriptions
    GET PATCH DELETE /v1/subscriptions/{id}
    GET /v1/subscriptions/{id}/attempts
    POST! /v1/subscriptions/{id}/rotate-secret
    POST /v1/subscriptions/{id}/test
    POST /v1/subscriptions/{id}/skip
  `,
  'sessions:read': `
    GET /v1/sessions
    GET /v1/sessions/{id}
    GET /v1/sessions/{id}/timeline
    GET /v1/sessions/refreshes
  `,
  'sessions:write': `
    POST /v1/sessions
    PATCH /v1/sessions/{id}
    PUT /v1/sessions/{id}/note-templates
    POST /v1/sessions/{id}/resolve
    POST /v1/sessions/refreshes
    POST /v1/recordings
    POST /v1/recordings/upload-url
  `,
  'notes:read': `
    GET /v1/sessions/{id}/notes
    GET /v1/sessions/{id}/notes/{documentId}/revisions
    GET /v1/sessions/{id}/transcript
    GET /v1/sessions/{id}/insights
    GET /v1/sessions/{id}/recording-url
    GET /v1/processing-sessions/{processingId}
    GET /fhir/DocumentReference
    GET /fhir/DocumentReference/{id}
    POST /fhir/DocumentReference/_search
  `,
  recorder: `
    POST /v1/recorder/launches
    POST /v1/recorder/recoveries
  `,
  compliance: `
    POST GET /v1/compliance/jobs
    GET /v1/compliance/jobs/{id}
    POST /v1/compliance/jobs/{id}/resolve
    POST /v1/compliance/upload-url
  `,
  'events:read': `
    GET /v1/events
  `,
  webhooks: `
    GET /v1/webhook-deliveries
    GET /v1/webhook-deliveries/{id}
    POST /v1/webhook-deliveries/{id}/replay
    POST /v1/webhook-deliveries/{id}/dismiss
    POST /v1/webhook-deliveries/replay
  `,
  operations: `
    GET /metrics
    GET /v1/overview
  `,
  admin: `
    POST! GET /v1/api-keys
    POST! /v1/api-keys/{id}/rotate
    DELETE /v1/api-keys/{id}
    GET /v1/audit
    PUT /v1/sending
    GET /v1/clients/{externalId}/disclosures
    PUT DELETE /v1/clients/{externalId}/legal-hold
  `,
  'people:read sessions:read notes:read': `
    GET! /v1/clients/{externalId}/export
  `,
  'imports people:read': `
    GET /v1/imports/{id}/rejected.csv
  `,
  'any key': `
    GET /v1/capabilities
    GET /v1/words
    POST /v1/search
    GET /v1/sending
    GET POST DELETE /v1/browser-session
    POST /v1/browser-session/step-up
    GET /v1/browser-sessions
    DELETE /v1/browser-sessions/{id}
  `,
  nothing: `
    GET /v1/sign-in/methods
    GET /fhir/metadata
    GET /health/live
    GET /health/ready
    POST /webhooks/platform
  `,
};

/** An operation and what it needs. */
export interface Row {
  operation: string;
  isPublic: boolean;
  isRead: boolean;
  needsStepUp: boolean;
  scopes: Scope[];
}

export const ROWS: Row[] = Object.entries(TABLE).flatMap(([need, text]) =>
  text.split('\n').flatMap((line) => {
    const [path = '', ...methods] = line.trim().split(' ').reverse();
    return methods.map((method) => ({
      operation: `${method.replace('!', '')} ${path}`,
      isPublic: need === 'nothing',
      isRead: method.startsWith('GET'),
      needsStepUp: method.endsWith('!'),
      scopes: ['nothing', 'any key'].includes(need) ? [] : (need.split(' ') as Scope[]),
    }));
  }),
);
