/** The URL to which a caller uploads a file before a request names it. */
export class UploadAddressResponse {
  /** Upload the file to this URL with `method` and `headers`, without an API key */
  uploadUrl!: string;
  /** The file's URL for POST /v1/sessions or POST /v1/compliance/jobs */
  url!: string;
  method!: 'PUT' | 'POST';
  headers!: Record<string, string>;
}
