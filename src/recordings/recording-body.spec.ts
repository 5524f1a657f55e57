import { recordingBody } from './recording-body.js';

it('the length and the media type are read from the headers', () => {
  expect(recordingBody({ 'content-length': '7', 'content-type': 'Audio/WAV; rate=8000' })).toEqual({
    length: 7,
    mediaType: 'audio/wav',
  });
  expect(recordingBody({ 'content-length': '2147483648' })).toEqual({ length: 2_147_483_648, mediaType: '' });
});

it.each([
  ['411: without Content-Length', {}, 411, 'length-required'],
  ['411: chunked', { 'transfer-encoding': 'chunked' }, 411, 'length-required'],
  ['400: an empty body', { 'content-length': '0' }, 400, 'empty-recording'],
  [
    '415: multipart',
    { 'content-length': '9', 'content-type': 'multipart/form-data; boundary=x' },
    415,
    'unsupported-media-type',
  ],
  ['415: compressed', { 'content-length': '9', 'content-encoding': 'gzip' }, 415, 'unsupported-encoding'],
])('%s', (_rule, headers, status, type) => {
  expect(() => recordingBody(headers)).toThrow(expect.objectContaining({ status, type }));
});
