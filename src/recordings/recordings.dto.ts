import { OptionalSize, OptionalText } from '../http/request/fields.js';

/** Bytes; no file of a recorder is larger. */
const LARGEST = 1024 ** 4;

/** `POST /v1/recordings/upload-url`: what the platform may want to know of the file beforehand. */
export class RecordingUploadRequest {
  /** @example audio/wav */
  @OptionalText(100)
  contentType?: string;

  /** Bytes */
  @OptionalSize(LARGEST)
  size?: number;
}

/** A recording that arrived at the platform's store. */
export class RecordingResponse {
  /** The recording's URL for POST /v1/sessions */
  url!: string;
  bytes!: number;
}
