export const HTTP_METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

/** The facts of an operation that the contract file cannot change. */
interface OperationFacts {
  /** Its purpose, for docs/reference/contract.md. */
  about: string;
  /** From the spec; if absent, the contract file must set it. */
  method?: (typeof HTTP_METHODS)[number];
  path?: string;
  /** Its other spelling in the spec. */
  otherPath?: string;
  /** Placeholders that each call fills, and that its URL must contain. */
  parameters: readonly string[];
  /** Pointers into the answer, from the field names in the spec. */
  response: Readonly<Record<string, string>>;
  /** Required pointers that only the contract file can set. */
  needs: readonly string[];
  /** Optional ones. */
  mayRead: readonly string[];
  /** True if the spec shows the body, or shows none. */
  bodyIsShown: boolean;
  /** Set if it returns an upload URL: the method with which a file is sent there. Its placeholders describe the file. */
  upload?: { method?: 'PUT' | 'POST' };
  /** True if the contract file names the states that end it. */
  endStates?: true;
  /** True if it only reads, so that it is also sent while sending is held. */
  reads: boolean;
  /** True if it creates something. */
  creates?: true;
  /** True if the API key is always sent as `Authorization: Bearer`, which the spec shows only for this operation. */
  bearerAlways?: true;
}

/** The facts of an operation that states no others. */
const usual = { parameters: [], response: {}, needs: [], mayRead: [], bodyIsShown: true, reads: false };

/** Pointers to fields at the top of an answer. */
const shown = (...names: string[]) => Object.fromEntries(names.map((name) => [name, `/${name}`]));

const session = { response: { session: '' } };
const uploadUrl = { bodyIsShown: false, needs: ['uploadUrl', 'fileUrl'] };

/** Every operation of the platform, with what is unusual about it. */
const OPERATION_FACTS = {
  checkUser: {
    about: 'Checks whether a user with an email exists.',
    method: 'POST',
    path: '/users/check',
    response: shown('isUserExists', 'userId'),
    reads: true,
  },
  createProvider: {
    about: 'Creates a provider.',
    method: 'POST',
    path: '/users/providers',
    response: shown('userId', 'inviteUrl'),
    creates: true,
  },
  createClient: {
    about: 'Creates a client.',
    method: 'POST',
    path: '/users/clients',
    response: shown('userId'),
    creates: true,
  },
  setClientProviders: {
    about: "Replaces a client's providers.",
    method: 'POST',
    path: '/users/{userId}/providers',
    parameters: ['userId'],
  },
  deleteUser: {
    about:
      'Deletes a user. `deleted` locates a boolean: false means that the platform kept the user. If unset, every 2xx means deleted.',
    method: 'DELETE',
    path: '/users/{userId}',
    parameters: ['userId'],
    mayRead: ['deleted'],
  },
  createSession: {
    about: 'Creates a session from a text or a recording.',
    response: shown('sessionId'),
    creates: true,
  },
  getSession: {
    about: 'Reads a session with its notes, transcript and insights.',
    ...session,
    parameters: ['sessionId'],
    bodyIsShown: false,
    reads: true,
  },
  updateSession: {
    about: 'Changes a session.',
    ...session,
    method: 'PATCH',
    path: '/api/v2/therapy-session/{sessionId}',
    otherPath: '/therapy-session/{sessionId}',
    parameters: ['sessionId'],
  },
  updateSessionTemplates: { about: 'Changes the note templates of a session.', ...session, parameters: ['sessionId'] },
  getProcessingSession: {
    about: 'Reads the session of a `processingId`, or the progress towards it.',
    parameters: ['processingId'],
    mayRead: ['sessionId', 'session'],
    bodyIsShown: false,
    reads: true,
  },
  // Spec, Therapy session creation request: the file is sent with an HTTP PUT.
  recordingUploadUrl: { about: 'Returns a URL to which a recording is sent.', ...uploadUrl, upload: { method: 'PUT' } },
  complianceUploadUrl: {
    about: 'Returns a URL to which a PDF is sent.',
    ...uploadUrl,
    method: 'GET',
    path: '/compliance/upload-url',
    upload: {},
  },
  submitComplianceJob: { about: 'Submits PDFs for a check.', response: shown('jobId'), creates: true },
  getComplianceJob: {
    about: 'Reads the result of a check.',
    method: 'GET',
    path: '/compliance/job/{jobId}',
    parameters: ['jobId'],
    mayRead: ['state'],
    bodyIsShown: false,
    endStates: true,
    reads: true,
  },
  initiateAuth: {
    about: 'Returns a token that opens the recorder. The key is always sent as `Authorization: Bearer`.',
    method: 'POST',
    path: '/authentication/initiate-auth',
    response: shown('otpToken'),
    bearerAlways: true,
  },
} satisfies Record<string, Partial<OperationFacts> & Pick<OperationFacts, 'about'>>;

export type OperationName = keyof typeof OPERATION_FACTS;
export const OPERATION_NAMES = Object.keys(OPERATION_FACTS) as OperationName[];

/** Returns all facts of an operation. */
export function factsOf(operation: OperationName): OperationFacts {
  return { ...usual, ...OPERATION_FACTS[operation] };
}
