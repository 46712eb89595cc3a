/* Axis, scale and zoom that all charts of a page share, and their controls. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useKept } from "../lib/hooks";
import { Choice, Icon, Toggle } from "../lib/ui";
import type { XAxis } from "./series";

export type Zoom = [number, number] | null;

export interface ChartView {
	axis: XAxis;
	setAxis: (a: XAxis) => void;
	log: boolean;
	setLog: (on: boolean) => void;
	zoom: Zoom;
	setZoom: (z: Zoom) => void;
}

export function useChartView(): ChartView {
	const [axis, keepAxis] = useKept<XAxis>("axis", "step");
	const [log, setLog] = useState(false);
	const [zoom, setZoom] = useState<Zoom>(null);
	const setAxis = (a: XAxis): void => {
		keepAxis(a);
		setZoom(null);
	};
	return { axis, setAxis, log, setLog, zoom, setZoom };
}

export function AxisChoice({ view }: { view: ChartView }): JSX.Element {
	return (
		<>
			<Choice
				label="Horizontal axis"
				now={view.axis}
				options={[
					["step", "Step"],
					["time", "Time"],
				]}
				pick={view.setAxis}
			/>
			<Toggle on={view.log} set={view.setLog} title="Logarithmic vertical axis">
				Log scale
			</Toggle>
		</>
	);
}

export function ResetZoom({ view }: { view: ChartView }): JSX.Element {
	return (
		<button type="button" disabled={view.zoom === null} onClick={() => view.setZoom(null)}>
			<Icon name="reset" />
			Reset zoom
		</button>
	);
}
