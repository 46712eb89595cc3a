/* A sorted list of paths as folders within folders. */

export interface OutputFile {
	path: string;
	size: number;
	sha256?: string | null;
	link?: string;
}

export interface Folder {
	name: string;
	bytes: number; /* of all files below it */
	folders: Folder[];
	files: OutputFile[];
}

export function outputTree(files: OutputFile[]): Folder {
	const top: Folder = { name: "", bytes: 0, folders: [], files: [] };
	const known = new Map<string, Folder>([["", top]]);
	const folderAt = (path: string): Folder => {
		const there = known.get(path);
		if (there) return there;
		const slash = path.lastIndexOf("/");
		const made: Folder = { name: path.slice(slash + 1), bytes: 0, folders: [], files: [] };
		folderAt(path.slice(0, Math.max(slash, 0))).folders.push(made);
		known.set(path, made);
		return made;
	};
	for (const f of files) {
		let dir = f.path.slice(0, Math.max(f.path.lastIndexOf("/"), 0));
		folderAt(dir).files.push(f);
		for (;;) {
			folderAt(dir).bytes += f.size;
			if (!dir) break;
			dir = dir.slice(0, Math.max(dir.lastIndexOf("/"), 0));
		}
	}
	return top;
}
