import { recordingBody, recordingFile } from './recording-file.js';

it.each([
  ['audio/wav', 'audio/wav', 'r-1.wav'],
  ['audio/mpeg', 'audio/mpeg', 'r-1.mp3'],
  ['audio/x-unheard-of', 'audio/x-unheard-of', 'r-1.bin'],
  ['', 'application/octet-stream', 'r-1.bin'],
  ['application/x-www-form-urlencoded', 'application/octet-stream', 'r-1.bin'],
  ['audio/wav, text/html', 'application/octet-stream', 'r-1.bin'],
])('a body of %p travels as %s', (mediaType, contentType, fileName) => {
  expect(recordingFile('r-1', mediaType, 7)).toEqual({ fileName, contentType, size: 7 });
});

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
