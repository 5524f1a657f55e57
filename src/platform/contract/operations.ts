export const HTTP_METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

/** What is fixed about an operation, whatever the contract file says. */
interface OperationFacts {
  /** What it is for, as docs/reference/contract.md says it. */
  about: string;
  /** Shown by the spec; what is absent has to come from the contract file. */
  method?: (typeof HTTP_METHODS)[number];
  path?: string;
  /** Placeholders that the call fills and that the address must hold. */
  parameters: readonly string[];
  /** Pointers into the answer that the spec's field names give. */
  response: Readonly<Record<string, string>>;
  /** Pointers that only the contract file can give: those that the operation can't do without, and others. */
  needs: readonly string[];
  mayRead: readonly string[];
  /** The spec shows the body, or shows that there is none. */
  bodyIsShown: boolean;
  /** Asks for an upload URL: its placeholders may describe the file, and `upload` says how to send it. */
  upload?: { method?: 'PUT' | 'POST' };
  /** Has states that end it. */
  endStates?: true;
  /** Makes something: sent over a connection of its own, so that a stale one can't leave its outcome unknown. */
  creates: boolean;
  /** Sends the API key as `Authorization: Bearer`, as the spec shows for this operation alone. */
  bearerAlways: boolean;
  /** The largest answer that is read, in bytes. */
  answerLimit: number;
}

const MIB = 1024 * 1024;

const usual = {
  parameters: [],
  response: {},
  needs: [],
  mayRead: [],
  bodyIsShown: true,
  creates: false,
  bearerAlways: false,
  answerLimit: MIB,
} as const satisfies Omit<OperationFacts, 'about'>;

/** Pointers to fields at the top of an answer. */
const shown = (...names: string[]) => Object.fromEntries(names.map((name) => [name, `/${name}`]));

const post = { ...usual, method: 'POST' } as const;
/** A session's transcript can be long. */
const session = { ...usual, response: { session: '' }, answerLimit: 64 * MIB };
const uploadUrl = { ...usual, bodyIsShown: false, needs: ['uploadUrl', 'fileUrl'] };

/** Every operation of the platform, with what the spec shows of it. */
const OPERATION_FACTS = {
  checkUser: {
    about: 'Asks whether a user has an email.',
    ...post,
    path: '/users/check',
    response: shown('isUserExists', 'userId'),
  },
  createProvider: {
    about: 'Makes a provider.',
    ...post,
    path: '/users/providers',
    response: shown('userId', 'inviteUrl'),
    creates: true,
  },
  createClient: { about: 'Makes a client.', ...post, path: '/users/clients', response: shown('userId'), creates: true },
  setClientProviders: {
    about: "Replaces a client's providers.",
    ...post,
    path: '/users/{userId}/providers',
    parameters: ['userId'],
  },
  deleteUser: {
    about:
      'Deletes a user. `deleted` locates a boolean: false means that the platform kept the user. If unset, every 2xx means deleted.',
    ...usual,
    method: 'DELETE',
    path: '/users/{userId}',
    parameters: ['userId'],
    mayRead: ['deleted'],
  },
  createSession: {
    about: 'Makes a session from a text or a recording.',
    ...usual,
    response: shown('sessionId'),
    creates: true,
  },
  getSession: {
    about: 'Reads a session with its notes, transcript and insights.',
    ...session,
    parameters: ['sessionId'],
    bodyIsShown: false,
  },
  updateSession: {
    about: 'Changes a session.',

    ...session,
    method: 'PATCH',
    path: '/api/v2/therapy-session/{sessionId}',
    parameters: ['sessionId'],
  },
  updateSessionTemplates: { about: 'Changes the note templates of a session.', ...session, parameters: ['sessionId'] },
  getProcessingSession: {
    about: 'Reads what became of a `processingId`: its session, or where that stands.',

    ...session,
    parameters: ['processingId'],
    response: {},
    mayRead: ['sessionId', 'session'],
    bodyIsShown: false,
  },
  // Spec, Therapy session creation request: the file is sent with an HTTP PUT.
  recordingUploadUrl: {
    about: 'Asks for a URL to which a recording is sent.',
    ...uploadUrl,
    upload: { method: 'PUT' },
  },
  complianceUploadUrl: {
    about: 'Asks for a URL to which a PDF is sent.',
    ...uploadUrl,
    method: 'GET',
    path: '/compliance/upload-url',
    upload: {},
  },
  submitComplianceJob: { about: 'Has PDFs checked.', ...usual, response: shown('jobId'), creates: true },
  getComplianceJob: {
    about: 'Reads what became of a check.',

    ...usual,
    method: 'GET',
    path: '/compliance/job/{jobId}',
    parameters: ['jobId'],
    mayRead: ['state'],
    bodyIsShown: false,
    endStates: true,
    answerLimit: 16 * MIB,
  },
  initiateAuth: {
    about: 'Asks for a token with which the recorder opens; always sends the key as `Authorization: Bearer`.',
    ...post,
    path: '/authentication/initiate-auth',
    response: shown('otpToken'),
    bearerAlways: true,
  },
} as const satisfies Record<string, OperationFacts>;

export type OperationName = keyof typeof OPERATION_FACTS;
export const OPERATION_NAMES = Object.keys(OPERATION_FACTS) as OperationName[];

/** The facts of one operation, with every field in its general type. */
export function factsOf(operation: OperationName): OperationFacts {
  return OPERATION_FACTS[operation];
}
