export declare const API_TYPES: string;
export declare function writeApiTypes(url: string, file?: string): Promise<void>;
