import type { FastifyInstance } from 'fastify';
import { objectOf, requiredText } from '../body-fields.js';
import type { PlatformRoute } from '../gate/platform-route.js';
import { invalid, notFound, Refusal } from '../refusal.js';
import type { SimulatorState } from '../state.js';
import { receiveUpload } from './receive-upload.js';
import type { Upload } from './upload-store.js';

/** Routes that return pre-signed URLs, in the formats of simulator/contract.json. */
export function uploadUrlRoutes(state: SimulatorState): PlatformRoute[] {
  return [
    {
      operation: 'recordingUploadUrl',
      method: 'POST',
      path: '/api/v1/recording-url',
      handle: (call) => {
        const { uploadUrl, fileUrl } = state.uploads.prepare(
          'recording',
          requiredText(objectOf(call.body), 'fileName'),
        );
        return { status: 201, body: { upload: { url: uploadUrl }, file: { url: fileUrl } } };
      },
    },
    {
      operation: 'complianceUploadUrl',
      method: 'GET',
      path: '/compliance/upload-url',
      handle: ({ query }) => ({ status: 200, body: state.uploads.prepare('compliance', query.fileName ?? 'file.pdf') }),
    },
  ];
}

/** The store behind pre-signed URLs, where only the URL authorises. */
export async function uploadTarget(app: FastifyInstance, state: SimulatorState): Promise<void> {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => done(null));

  // Browsers upload directly, from any page.
  app.addHook('onRequest', async (_request, reply) => {
    reply.headers({
      'access-control-allow-origin': '*',
      'access-control-allow-methods': 'PUT',
      'access-control-allow-headers': 'content-type',
    });
  });
  app.options('/uploads/:id', async (_request, reply) => reply.code(204).send());

  app.put<{ Params: { id: string }; Querystring: { token?: string } }>('/uploads/:id', async (request, reply) => {
    const upload = state.uploads.find(request.params.id);
    if (!upload) throw notFound('Upload');
    refuseUnfit(upload, request.query.token, state.nowMs(), request.headers);
    refuseUnsigned(upload, state.settings.uploadContentType, request.headers['content-type']);
    const { socket } = request.raw;
    const whole = await receiveUpload(upload, request.raw, state.settings.breakUploadsAfterBytes);
    if (whole) return reply.code(200).header('etag', `"${upload.sha256}"`).send();
    reply.hijack();
    socket.resetAndDestroy();
    return reply;
  });

  app.get<{ Params: { sessionId: string }; Querystring: { expires?: string } }>(
    '/recordings/:sessionId',
    async ({ params, query }, reply) => {
      const session = state.sessions.find(params.sessionId);
      if (session?.input.kind !== 'recording') throw notFound('Recording');
      if (!(Number(query.expires) > state.nowMs())) throw new Refusal(403, 'This URL has expired.');
      return reply.header('content-type', 'audio/wav').send(silentWav());
    },
  );
}

function refuseUnfit(
  upload: Upload,
  token: string | undefined,
  nowMs: number,
  headers: Readonly<Record<string, string | string[] | undefined>>,
): void {
  if (token !== upload.token) throw new Refusal(403, 'This URL is not signed.');
  if (nowMs > upload.expiresAt) throw new Refusal(403, 'This URL has expired.');
  if (headers.authorization !== undefined)
    throw invalid('A pre-signed URL must be used without an Authorization header.');
  if (headers['content-length'] === undefined) throw new Refusal(411, 'Content-Length is required.');
}

/** @param signedFor the setting `uploadContentType` */
function refuseUnsigned({ kind }: Upload, signedFor: string, contentType: string | undefined): void {
  if (signedFor === '') {
    if (kind === 'compliance' && contentType !== 'application/pdf')
      throw invalid('Content-Type must be application/pdf.');
    return;
  }
  const wanted = signedFor === 'none' ? undefined : signedFor;
  if (contentType !== wanted) throw new Refusal(403, 'The signature does not match the Content-Type.');
}

/** A WAV file without samples: 8 kHz, 8 bit, mono. */
function silentWav(): Buffer {
  const wav = Buffer.alloc(44);
  wav.write('RIFF', 0);
  wav.writeUInt32LE(36, 4);
  wav.write('WAVEfmt ', 8);
  wav.writeUInt32LE(16, 16);
  wav.writeUInt16LE(1, 20);
  wav.writeUInt16LE(1, 22);
  wav.writeUInt32LE(8_000, 24);
  wav.writeUInt32LE(8_000, 28);
  wav.writeUInt16LE(1, 32);
  wav.writeUInt16LE(8, 34);
  wav.write('data', 36);
  return wav;
}
