interface ErrorBody {
  /** Resources of FHIR have types of other forms. */
  readonly type?: unknown;
  readonly issue?: readonly { readonly details?: { readonly coding?: readonly { readonly code?: string }[] } }[];
}

/** The type of the problem in the body of an error: problem details, or an OperationOutcome. */
export function problemTypeIn({ type, issue }: ErrorBody): string | undefined {
  const [, word] = typeof type === 'string' ? type.split('urn:notebridge:problem:') : [];
  return word ?? issue?.[0]?.details?.coding?.[0]?.code;
}
