interface ErrorBody {
  readonly type?: string;
  readonly issue?: readonly { readonly details?: { readonly coding?: readonly { readonly code?: string }[] } }[];
}

/** The type of the problem in the body of an error: problem details, or an OperationOutcome. */
export function problemTypeIn({ type, issue }: ErrorBody): string | undefined {
  return type?.split('urn:notebridge:problem:')[1] ?? issue?.[0]?.details?.coding?.[0]?.code;
}
