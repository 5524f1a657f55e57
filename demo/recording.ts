const SAMPLE_RATE = 8_000;
const BYTES_PER_SAMPLE = 2;
const HEADER_BYTES = 44;
const TONE_HZ = 220;

/** A recording of a quiet tone: PCM in a RIFF WAVE file. @param seconds its length */
export function toneRecording(seconds: number): Buffer<ArrayBuffer> {
  const dataBytes = seconds * SAMPLE_RATE * BYTES_PER_SAMPLE;
  const file = Buffer.alloc(HEADER_BYTES + dataBytes);
  file.write('RIFF', 0);
  file.writeUInt32LE(HEADER_BYTES - 8 + dataBytes, 4);
  file.write('WAVEfmt ', 8);
  file.writeUInt32LE(16, 16);
  file.writeUInt16LE(1, 20);
  file.writeUInt16LE(1, 22);
  file.writeUInt32LE(SAMPLE_RATE, 24);
  file.writeUInt32LE(SAMPLE_RATE * BYTES_PER_SAMPLE, 28);
  file.writeUInt16LE(BYTES_PER_SAMPLE, 32);
  file.writeUInt16LE(8 * BYTES_PER_SAMPLE, 34);
  file.write('data', 36);
  file.writeUInt32LE(dataBytes, 40);
  for (let sample = 0; sample < seconds * SAMPLE_RATE; sample++) {
    const level = Math.round(3_000 * Math.sin((2 * Math.PI * TONE_HZ * sample) / SAMPLE_RATE));
    file.writeInt16LE(level, HEADER_BYTES + sample * BYTES_PER_SAMPLE);
  }
  return file;
}
