import assert from "node:assert/strict";
import { it } from "node:test";
import { outputTree } from "../src/run/output_tree";

it("paths become folders with the sizes of what is below them", () => {
	const tree = outputTree([
		{ path: "w-0/model/a", size: 3 },
		{ path: "w-0/model/deep/b", size: 5 },
		{ path: "w-0/top", size: 1 },
		{ path: "w-1/model/a", size: 7 },
	]);
	assert.deepEqual(
		tree.folders.map((f) => [f.name, f.bytes]),
		[
			["w-0", 9],
			["w-1", 7],
		],
	);
	const model = tree.folders[0]!.folders[0]!;
	assert.equal(model.name, "model");
	assert.equal(model.bytes, 8);
	assert.deepEqual(model.files.map((f) => f.path), ["w-0/model/a"]);
	assert.deepEqual(tree.folders[0]!.files.map((f) => f.path), ["w-0/top"]);
	assert.equal(tree.bytes, 16);
	assert.deepEqual(outputTree([]).folders, []);
});
