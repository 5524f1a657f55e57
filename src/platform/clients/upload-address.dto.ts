/** Where a caller sends a file itself, before a request names it. */
export class UploadAddressResponse {
  /** Send the file here with `method` and `headers`, and without an API key */
  uploadUrl!: string;
  /** Names the file in POST /v1/sessions or POST /v1/compliance/jobs afterwards */
  url!: string;
  method!: 'PUT' | 'POST';
  headers!: Record<string, string>;
}
