import { useState } from 'react';
import { useLocation } from 'wouter';
import { csrf, ProblemError, refusalOf } from '../../api/client.js';
import { useAction } from '../../parts/action.js';
import type { Kind } from './recognise.js';
import type { Import } from './words.js';

/** A file with what it holds. */
export interface Part {
  kind: Kind;
  name: string;
  content: Blob;
}

/** What else is said with an upload. */
export interface Choices {
  mode: 'upsert' | 'snapshot';
  /** Nothing is sent until somebody applies the plan. */
  dryRun: boolean;
  defaultProvider?: string;
  idSystem?: string;
  encounterSince?: string;
}

/**
 * Sends files as one import. fetch() tells nothing of how far an upload is, so XMLHttpRequest does it.
 *
 * @param onProgress told the share that was sent, 0 to 1
 */
function upload(parts: readonly Part[], choices: Choices, onProgress: (share: number) => void): Promise<Import> {
  const form = new FormData();
  for (const { kind, name, content } of parts) form.append(kind, content, name);
  const said = Object.entries(choices).filter(([, value]) => String(value ?? '').trim() !== '');
  const query = new URLSearchParams(said.map(([name, value]) => [name, String(value).trim()]));
  query.set('kind', parts[0]?.kind ?? 'clients');
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const token = csrf();
    request.open('POST', `/v1/imports?${query}`);
    request.setRequestHeader('x-csrf-token', token);
    request.upload.onprogress = ({ loaded, total }) => onProgress(total === 0 ? 0 : loaded / total);
    request.onload = () => {
      const { status, responseText } = request;
      if (status === 202) resolve(JSON.parse(responseText) as Import);
      else refusalOf(new Response(responseText, { status }), token).then(reject, reject);
    };
    request.onerror = () =>
      reject(
        new ProblemError(0, 'unreachable', 'The upload broke off; check that the service runs, then send it again.'),
      );
    request.send(form);
  });
}

/** Sends files as a new import, and goes to it. `share` is how much was sent, 0 to 1. */
export function useUpload(onSent?: () => void) {
  const [, navigate] = useLocation();
  const [share, setShare] = useState(0);
  const { mutate, isPending, error } = useAction(async (sent: { parts: readonly Part[]; choices: Choices }) => {
    const { id } = await upload(sent.parts, sent.choices, setShare);
    onSent?.();
    navigate(`/imports/${id}`);
  });
  return { send: (parts: readonly Part[], choices: Choices) => mutate({ parts, choices }), share, isPending, error };
}
