import { useState } from 'react';
import { useLocation } from 'wouter';
import { NotebridgeError } from '../../../client/notebridge-error.js';
import { csrf, refusalOf } from '../../api/client.js';
import { useAction } from '../../parts/action.js';
import type { Import } from './words.js';

/** A file as part of a form. The service detects the kind of one that is called `file`. */
export interface Part {
  part: 'providers' | 'clients' | 'file';
  name: string;
  content: Blob;
}

/** The query of an upload. */
export interface Choices {
  kind?: 'fhir';
  mode: 'upsert' | 'snapshot';
  /** Nothing is sent until the plan is applied. */
  dryRun: boolean;
  defaultProvider?: string;
  idSystem?: string;
  encounterSince?: string;
  correctionOf?: string;
}

/**
 * Sends files as one import. fetch() does not report the progress of an upload, so XMLHttpRequest sends it.
 *
 * @param onProgress receives the share that was sent, 0 to 1
 */
function upload(parts: readonly Part[], choices: Choices, onProgress: (share: number) => void): Promise<Import> {
  const form = new FormData();
  for (const { part, name, content } of parts) form.append(part, content, name);
  const texts = Object.entries(choices).map(([name, value]) => [name, String(value ?? '').trim()]);
  const query = new URLSearchParams(texts.filter(([, text]) => text !== ''));
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
      reject(new NotebridgeError('no-answer', 0, 'The upload was interrupted. Check the service, then try again.'));
    request.send(form);
  });
}

/** Sends files as a new import and opens it. `share` is how much was sent, 0 to 1. */
export function useUpload(onSent: () => void) {
  const [, navigate] = useLocation();
  const [share, setShare] = useState(0);
  const action = useAction(async (sent: { parts: readonly Part[]; choices: Choices }) => {
    const { id } = await upload(sent.parts, sent.choices, setShare);
    onSent();
    navigate(`/imports/${id}`);
  });
  return { ...action, share };
}
