import { recordingFile } from './recording-file.js';

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
