export const HTTP_METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
export type HttpMethod = (typeof HTTP_METHODS)[number];
export const UPLOAD_METHODS = ['PUT', 'POST'] as const;
export type UploadMethod = (typeof UPLOAD_METHODS)[number];

export type JsonValue = string | number | boolean | null | JsonValue[] | { [key: string]: JsonValue };

/** How a file is sent to an upload URL. */
export interface UploadRule {
  method?: UploadMethod;
  /** They win over what is sent otherwise; null: the header is not sent. */
  headers: Record<string, string | null>;
}

/** The values of a compliance job's state that end it. */
export interface EndStates {
  completed: string[];
  failed: string[];
}

/** How one operation is called; `{name}` in a path, header, query or body stands for a parameter of the call. */
export interface OperationRule {
  method?: HttpMethod;
  /** Appended to the platform's base address, whose own path is kept. */
  path?: string;
  headers: Record<string, string>;
  query: Record<string, string>;
  /** Only where the spec shows no body. */
  body?: JsonValue;
  /** What is read from the answer, each by its JSON Pointer (RFC 6901). */
  response: Record<string, string>;
  upload?: UploadRule;
  states?: EndStates;
}
