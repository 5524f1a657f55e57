import { useWorld } from '../world/use-world.js';

/** One of each sort: the unit specs of the check itself try 500. */
const URLS = [
  'https://127.0.0.1/a.pdf',
  'https://0x7f000001/a.pdf',
  'https://169.254.169.254/a.pdf',
  'https://[::ffff:10.0.0.1]/a.pdf',
  'https://localhost/a.pdf',
  'https://metadata.google.internal/a.pdf',
  'https://user:secret@files.example.com/a.pdf',
  'http://files.example.com/a.pdf',
  'file:///etc/passwd',
  '//127.0.0.1/',
  '',
];
const GOOD = 'https://files.example.com/1.wav';

const world = useWorld();
let url: string;

beforeEach(async () => {
  const settings = {
    PRIVATE_HOSTS_ALLOWED: 'false',
    PLATFORM_PARTNER_DOMAIN: 'recorder.example.com',
    REDIRECT_ALLOWED_ORIGINS: 'https://ehr.example.com',
  };
  ({ url } = await world.startAnother(settings));
});

async function post(path: string, body: string, type = 'application/json'): Promise<[number, string | undefined]> {
  const headers = { authorization: 'Bearer admin-key-of-the-notebridge-tests', 'content-type': type };
  const answer = await fetch(url + path, { method: 'POST', headers, body });
  return [answer.status, ((await answer.json()) as { pointer?: string }).pointer];
}

const session = (recordingUrls: string[]) => ({
  provider: 'p-1',
  noteTemplateIds: ['11111111-1111-4111-8111-111111111111'],
  input: { recording: { recordingUrls, recordingContent: 'Recording' } },
});

test.each<[what: string, path: string, pointer: string, bodyOf: (hostile: string) => object]>([
  [
    'a file of a compliance job',
    '/v1/compliance/jobs',
    '/files/0/url',
    (hostile) => ({ files: [{ id: 'a', url: hostile }] }),
  ],
  ['a recording', '/v1/sessions', '/input/recording/recordingUrls/1', (hostile) => session([GOOD, hostile])],
  [
    'a redirect of the recorder',
    '/v1/recorder/launches',
    '/redirectUrl',
    (redirectUrl) => ({ provider: 'p-1', client: 'c-1', variant: 'virtual', redirectUrl }),
  ],
])('hostile URLs are rejected as %s', async (_, path, pointer, bodyOf) => {
  for (const hostile of URLS) {
    const [status, at] = await post(path, JSON.stringify(bodyOf(hostile)));
    expect([hostile, [400, 422].includes(status), at]).toEqual([hostile, true, pointer]);
  }
  expect(world.platform.arrivals()).toBe(0);
});

test('a recording is not sent to a hostile URL from the platform', async () => {
  const { state } = world.platform.simulator;
  const { publicUrl } = state;
  state.publicUrl = 'https://127.0.0.1:65535';
  expect(await post('/v1/recordings', 'sound', 'audio/wav')).toEqual([504, undefined]);
  expect(world.platform.arrivals('recordingUploadUrl')).toBe(1);
  state.publicUrl = publicUrl;
});
